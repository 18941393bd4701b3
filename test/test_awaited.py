# SPDX-License-Identifier: MIT
"""Each message that a test awaits must be in the sources. A check runs each test with few sets of its parameters. So a
message that has changed shows here in seconds, and not only when the set that awaits the old one is drawn."""

import ast
import os
import re

from conftest import REPO, SOURCES

# Messages of other programs, libraries and scripts; texts that are mostly values, or three texts inside one another.
OTHERS = {"check, all, rest or release", "line 2 has two lengths", "multiple LN", "unrecognized option", "not found. Install it",
          "other [view] [a b]", "--misses", "--speed", 'it begins with "[M::bwa_idx_load_from_disk] read 0 ALT c"',
          "copied blocks: none: what is written to the output", "%s: reference c has M5:cd, and M5:ab in the first input",
          "standard output cannot be both output and checksum", "standard output cannot be both output and flagstat",
          "does not say all yet", "error: call it as ./configure; then `make BUILD=DIR` builds in another folder"}

PART = re.compile(r"""/\*.*?\*/|//[^\n]*|\#[ \t]*include[^\n]*|'(?:[^'\\]|\\.)*'|"(?P<text>(?:[^"\\]|\\.)*)"|\s+
                      |(?P<name>[A-Za-z_]\w*)|(?P<other>[^\s"'A-Za-z_/\#]+|.)""", re.S | re.X)
CONVERSION = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:hh|h|ll|l|j|z|t)?[a-zA-Z]|%%")
ANY = None   # part of a pattern: a value, or a macro between two parts of a text


# ------------------------------------------------------------------- tests: what they await


def constants(node, names):
    """The texts that an expression can have as its value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.BinOp):
        yield from constants(node.left, names)
        yield from constants(node.right, names) if isinstance(node.op, ast.Add) else ()
    elif isinstance(node, ast.IfExp):
        yield from [*constants(node.body, names), *constants(node.orelse, names)]
    elif isinstance(node, (ast.Tuple, ast.List)):
        for each in node.elts:
            yield from constants(each, names)
    elif isinstance(node, ast.Name):
        for each in names.get(node.id, ()):
            yield from constants(each, {})


def elements(node, names):
    """The expressions that a loop runs over, or that are the values of a parameter."""
    if isinstance(node, ast.Name):
        return [x for value in names.get(node.id, ()) for x in elements(value, {})]
    if isinstance(node, ast.Dict):
        return [ast.Tuple(elts=pair) for pair in zip(node.keys, node.values)]
    if isinstance(node, ast.Call):                       # {...}.items(), pytest.param(...)
        return elements(node.func.value, names) if getattr(node.func, "attr", "") == "items" else []
    if isinstance(node, ast.BinOp):
        return elements(node.left, names) + elements(node.right, names)
    return getattr(node, "elts", [])


def bind(target, values, names):
    if isinstance(target, ast.Name):
        names.setdefault(target.id, []).extend(values)
    for i, part in enumerate(getattr(target, "elts", ())):
        bind(part, [v.elts[i] for v in values if len(getattr(v, "elts", ())) == len(target.elts)], names)


def names_in(test, names):
    """The names in a test and their possible values: parameters, variables of loops, assigned variables."""
    names = dict(names)
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and getattr(mark.func, "attr", "") == "parametrize":
            target = ast.parse(mark.args[0].value).body[0].value
            values = [ast.Tuple(elts=v.args) if isinstance(v, ast.Call) and isinstance(target, ast.Tuple) else v
                      for v in elements(mark.args[1], names)]
            bind(target, values, names)
    for node in ast.walk(test):
        if isinstance(node, (ast.For, ast.comprehension)):
            bind(node.target, elements(node.iter, names), names)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            bind(node.targets[0], [node.value], names)
    return names


def is_told(node):
    return any(isinstance(n, ast.Attribute) and n.attr == "stderr" for n in ast.walk(node))


def awaited(path):
    """The texts that a file's tests look for on standard error."""
    tree = ast.parse(path.read_text())
    names = {t.id: [n.value] for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    for test in [n for n in tree.body if isinstance(n, ast.FunctionDef)]:
        known = names_in(test, names)
        for node in ast.walk(test):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.Eq)) and is_told(node.comparators[0]):
                yield from constants(node.left, known)
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq) and is_told(node.left):
                yield from constants(node.comparators[0], known)
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("startswith", "endswith") and is_told(node.func):
                yield from [text for each in node.args for text in constants(each, known)]
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "refused":
                texts = [text for each in node.args for text in constants(each, known)]
                yield from [part for text in texts for part in re.split(r"\.\*|\|", text)
                            if " " in part and not re.search(r"[\\^$?+{}()\[\]]|^'?-\w ", part)]


# ------------------------------------------------------------------- sources: what there is


def split(text):
    return [word.strip(".,:;()'\"?!") or word for word in text.lower().split()]


def pattern(text):
    text = CONVERSION.sub("\0", re.sub(r"\\[nt]", " ", text)).replace("\\", "")
    return [ANY if "\0" in word else word for word in split(text)]


def patterns(source):
    text, gap = None, False
    for part in PART.finditer(source):
        if part["text"] is not None:
            text = part["text"] if text is None else text + (" \0 " if gap else "") + part["text"]
            gap = False
        elif part["name"]:
            gap = text is not None
        elif part["other"]:
            if text:
                yield pattern(text + (" \0" if gap else ""))
            text, gap = None, False


def is_plain(word):
    """Returns whether it is a word, and not a value as in tests: a name, a number."""
    return re.fullmatch("[a-z'-]{2,}", word) is not None


def fits(words, pattern, least=2 / 3):
    """Returns whether the words can follow one another in a text of the pattern, and at least that share of them is its
    own."""
    best = {at: 0 for at in range(len(pattern))}         # by place: the number of its own words so far
    for i, word in enumerate(words):
        after, todo = {}, list(best.items())
        while todo:
            at, own = todo.pop()
            if at == len(pattern):
                continue
            there = pattern[at]
            if there is ANY:
                after[at] = max(own, after.get(at, 0))
                todo.append((at + 1, own))
            elif there == word or i == 0 and there.endswith(word) or i == len(words) - 1 and there.startswith(word):
                after[at + 1] = max(own + is_plain(word), after.get(at + 1, 0))
        best = after
    return bool(best) and max(best.values()) >= least * sum(map(is_plain, words))


def is_known(words, known):
    """Returns whether the words are one text, or two of which one is inside the other; then each is a word of its
    pattern."""
    if any(fits(words, p) for p in known):
        return True
    cuts = [i for i in range(1, len(words)) if any(map(is_plain, words[:i])) and any(map(is_plain, words[i:]))]
    return any(any(fits(words[:i], p, 1) for p in known) and any(fits(words[i:], p, 1) for p in known) for i in cuts)


def test_a_message_that_is_awaited_is_in_no_source():
    sources = [*SOURCES, *REPO.glob("*.h"), *REPO.glob("*/*.h")]
    known = [p for path in sources if not path.parent.name.startswith("build") for p in patterns(path.read_text(encoding="latin-1"))]
    by_word = {}
    for p in {tuple(p) for p in [*known, *[split(os.strerror(i)) for i in range(1, 134)]]}:
        for word in set(p):
            by_word.setdefault(word, []).append(p)
    texts = {(path.name, line) for path in sorted((REPO / "test").glob("test_*.py")) for text in awaited(path)
             for line in text.split("\n") if line not in OTHERS}
    assert len(texts) > 150
    lost = []
    for name, text in sorted(texts):
        words = split(re.sub(r"%[-0-9.]*[a-z]", "0", re.sub(r"^((samtools \w+|bgzip): )?(warning: )?", "", text)))
        near = {p for word in words if is_plain(word) for p in by_word.get(word, ())}
        if any(map(is_plain, words)) and not is_known(words, near):
            lost.append((name, text))
    assert not lost, "\n".join(map(str, lost))
