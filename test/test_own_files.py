# SPDX-License-Identifier: MIT
"""Files that we write beside the output (checksum, trace, report, statistics, index of bgzip) never destroy data,
and no mistyped word is used as the name of such a file. TEST_LINES=n: n random command lines instead of 60."""

import gzip
import os
import random
import re
import shutil

import pytest

from conftest import BINARY, run, script, the_oracle

SAM = "@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:c1\tLN:1000\n@RG\tID:x\n" + "".join(
    "q%d\t%d\tc1\t%d\t9\t4M\t=\t%d\t0\tACGT\tIIII\tRG:Z:x\tMC:Z:4M\tms:i:160\n" % (n, flag, 10 * n + 5, 10 * n + 5)
    for n in range(4) for flag in (99, 147))
BEYOND = ["total-memory", "checksum", "verify", "report", "trace", "progress", "no-progress", "stats", "stats-args", "flagstat",
          "idxstats", "coverage"]
COMMANDS = {"sort": BEYOND + ["add-input", "picard", "check", "copy-blocks", "size-hint", "tmpdir-env", "plan"],
            "merge": BEYOND + ["copy-blocks", "plan"], "collate": BEYOND, "fixmate": BEYOND + ["sanitize"], "markdup": BEYOND + ["plan"],
            "sormadup": BEYOND + ["fixmate-args", "markdup-args", "collate", "plan", "size-hint", "add-input"]}
EVERYWHERE = ["threads", "output-fmt", "output-fmt-option", "input-fmt-option", "reference", "write-index", "verbosity", "no-PG"]
# The long options of samtools 1.24, except --input-fmt, which it refuses.
SAMTOOLS = {"sort": EVERYWHERE + ["template-coordinate"], "merge": EVERYWHERE + ["template-coordinate"], "collate": EVERYWHERE,
            "fixmate": EVERYWHERE, "sormadup": EVERYWHERE,
            "markdup": EVERYWHERE + ["include-fails", "no-multi-dup", "read-coords", "coords-order", "barcode-tag", "barcode-name",
                                     "barcode-rgx", "move-umi-to-tag", "umi-separator", "use-read-groups", "json", "duplicate-count", "mode"]}
LINE = {"sort": ["-o", "out.bam", "in.bam"], "merge": ["-o", "out.bam", "in.bam"], "collate": ["-o", "out.bam", "in.bam"],
        "fixmate": ["in.sam", "out.bam"], "markdup": ["in.bam", "out.bam"], "sormadup": ["-o", "out.bam", "in.sam"]}


@pytest.fixture
def here(tmp_path):
    (tmp_path / "in.sam").write_text(SAM.replace("\tSO:coordinate", ""))
    (tmp_path / "ref.fa").write_text(">c1\n" + "ACGTACGTAC" * 100 + "\n")
    (tmp_path / "ref.fa.fai").write_text("c1\t1000\t4\t1000\t1001\n")
    (tmp_path / "x.bed").write_text("c1\t1\t90\n")
    (tmp_path / "list").write_text("in.bam\n")
    for name in "in.bam", "two.bam":
        assert run(["sort", "--no-PG", "--write-index", "-o", name, "in.sam"], cwd=tmp_path).returncode == 0
    return tmp_path


def seen(folder):
    """Each file, and the attributes that would change if it were written."""
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns, p.stat().st_size, p.is_symlink()) for p in folder.iterdir()}


def refused(here, words, *argv, **kw):
    before = seen(here)
    p = run(argv, cwd=here, **kw)
    assert p.returncode == 1 and re.search(words, p.stderr), (argv, p.stderr)
    assert seen(here) == before, argv
    return p.stderr


# ----------------------------------------------------------- abbreviations


@pytest.mark.parametrize("command", COMMANDS)
def test_abbreviation_is_completed_to_an_option_that_samtools_has_not(here, command):
    """--check in.bam once wrote a text to in.bam."""
    known = SAMTOOLS[command]
    for name in COMMANDS[command]:
        for n in sorted({2, 3, len(name) // 2, len(name) - 1}):
            begun = name[:n]
            if begun in COMMANDS[command] or any(x.startswith(begun) for x in known):
                continue
            for words in ["--" + begun, "two.bam"], ["--%s=two.bam" % begun], ["--" + begun]:
                err = refused(here, "there is no option --" + begun, command, *words, *LINE[command])
                assert begun == "check" or re.search("--%s[a-zA-Z-]+ in full" % begun, err), err


@pytest.mark.parametrize("command", [x for x in COMMANDS if x != "sort"])
def test_check_is_refused_without_its_name(here, command):
    for words in ["--check", "two.bam"], ["--check"]:
        assert "samtools sort --check" in refused(here, "no option --check in " + command, command, *words, *LINE[command])


@pytest.mark.slow
@pytest.mark.parametrize("command", ["collate", "fixmate", "markdup"])
def test_abbreviation_of_samtools_means_something_else(here, command, monkeypatch):
    """For sort and merge see test_options.py and test_merge_args.py. If several abbreviations stand for the same
    options, only the shortest is tried."""
    values = {"threads": "2", "verbosity": "3", "output-fmt": "sam", "output-fmt-option": "level=1", "mode": "t",
              "input-fmt-option": "decode_md=0", "reference": "ref.fa", "read-coords": "(x)(y)(z)", "coords-order": "txy",
              "barcode-tag": "BX", "barcode-rgx": "(q)", "umi-separator": ":"}
    monkeypatch.chdir(here)
    names = {*SAMTOOLS[command], *COMMANDS[command]}
    for name in SAMTOOLS[command]:
        like = [{other for other in names if other.startswith(name[:n])} for n in range(len(name) + 1)]
        for n in [n for n in range(1, len(name) + 1) if n == len(name) or like[n] != like[n - 1]]:
            words = ["--" + name[:n], *([values[name]] if name in values else []), *LINE[command]]
            if "input-fmt".startswith(name[:n]):
                continue                         # samtools also has an --input-fmt, and refuses it
            status, told = the_oracle().call(command, words, None)
            p = run([command, *words], cwd=here)
            assert p.returncode == status, (words, p.stderr, told)


def test_long_option_with_one_dash_is_taken_for_letters(here):
    for command, word in ("sort", "-threads"), ("sort", "-no-PG"), ("markdup", "-mode"), ("merge", "-checksum"):
        refused(here, "no option %s: write -%s, with two dashes" % (word, word), command, word, "4", *LINE[command])
    assert run(["sort", "-help"]).stdout.startswith(b"Usage: samtools sort")


# ------------------------------------------------------------ data stay


def files_of_data(here):
    """Name -> its description in a message."""
    line = SAM.split("\n")[3]
    some = {"a.bam": (here / "in.bam").read_bytes(), "a.gz": gzip.compress(b"x"), "a.cram": b"CRAM\3\0", "a.hd": b"@HD\tVN:1.6\n",
            "a.co": b"@CO\thello\n", "a.fq": b"@read/1\nAC\n+\nII\n", "a.fa": b">c1\nACGT\n", "a.vcf": b"##fileformat=VCFv4.2\n",
            "a.bai": b"BAI\1\0\0\0\0", "no_header": line.encode() + b"\n",
            "no_tags": "\t".join(line.split("\t")[:11]).encode() + b"\n", "a.xz": b"\xfd7zXZ\0\0"}
    for name, data in some.items():
        (here / name).write_bytes(data)
    os.symlink("a.bam", here / "link")
    os.link(here / "a.gz", here / "hard")
    return [*some, "link", "hard"]


@pytest.mark.parametrize("command", COMMANDS)
def test_data_are_replaced_by_what_stands_beside_the_output(here, command):
    for name in files_of_data(here):
        options = [["--checksum=" + name], ["--checksum=samtools:" + name], ["--trace=" + name], ["--report=" + name]]
        options += [["--stats=" + name], ["--flagstat=" + name], ["--idxstats=" + name]]
        options += [["--coverage=" + name]] * (command != "collate")    # which refuses it, because of the order
        options += [["-f", name]] if command == "markdup" else [["--markdup-args", "-f " + name]] if command == "sormadup" else []
        for option in options:
            refused(here, "%s holds .*, so the (checksum|trace|report|stats|flagstat|idxstats|coverage|statistics) does not replace it" % name,
                    command, *option, *LINE[command])


def test_data_are_replaced_by_the_checksum_of_a_check(here):
    refused(here, "two.bam holds", "sort", "--check", "--checksum=two.bam", "in.bam")


@pytest.mark.parametrize("line", [
    "sort --trace in.bam -o o.bam", "sort --checksum in.bam -o o.bam", "merge --checksum two.bam -o o.bam in.bam",
    "sort --checksum missing.bam in.bam", "collate --trace new.cram -o o.bam in.bam", "sort --checksum ref.fa -o o.bam in.bam",
    "sort --checksum -o o.bam in.bam", "sort --trace -@2 in.bam", "markdup --trace --no-PG in.bam o.bam"])
def test_word_behind_an_option_is_taken_for_its_file(here, line):
    """The word after the option is the input, or the next option."""
    refused(here, r"Write --(checksum|trace)=FILE", *line.split(), stdin=SAM.encode())


def test_checksum_of_samtools_without_a_file_makes_one_of_that_name(here):
    for words in ["--checksum", "samtools"], ["--checksum=samtools"]:
        refused(here, "--checksum=samtools:FILE", "sort", *words, *LINE["sort"])
    assert run(["sort", "--checksum=./samtools", *LINE["sort"]], cwd=here).returncode == 0
    assert (here / "samtools").read_text().startswith("records=8 ")


@pytest.mark.parametrize("line", [
    "merge -L x.bed -o o.bam in.bam --trace=x.bed", "merge -L ./x.bed -o o.bam in.bam --trace=hard.bed",
    "merge -L x.bed -o o.bam in.bam --checksum=link.bed", "merge -b list -o o.bam --report=list", "merge -blist -o o.bam --checksum=list",
    "merge -X -o o.bam in.bam index --checksum=index", "sort -M -I plain.fa -o o.bam in.bam --checksum=plain.fa",
    "sort --reference=plain.fa -o o.bam in.bam --checksum=plain.fa", "sort --reference ref.fa -o o.bam in.bam --checksum=ref.fa.fai",
    "sort --output-fmt-option reference=plain.fa -O cram -o o.cram in.bam --trace=plain.fa",
    "sort --input-fmt-option reference=plain.fa -o o.bam in.bam --trace=plain.fa", "merge -h plain.fa -o o.bam in.bam --report=plain.fa",
    "markdup -f x.bed --input-fmt-option reference=x.bed in.bam o.bam", "sormadup --reference plain.fa --markdup-args=-fplain.fa in.sam -o o.bam",
    "sort -o o.bam in.bam --checksum=in.bai"])
def test_file_that_the_command_line_reads_is_replaced(here, line):
    """These files have no mark that shows their format."""
    os.symlink("x.bed", here / "link.bed")
    os.link(here / "x.bed", here / "hard.bed")
    for name in "plain.fa", "index", "in.bai":
        (here / name).write_text("nothing that we know\n")
    refused(here, "also names it elsewhere|an index of the", *line.split())


def test_file_of_ours_is_not_replaced_any_more(here):
    """It is replaced even if it exists, whether it is ours or another text."""
    for _ in range(2):
        p = run(["sort", "--checksum", "sum", "--trace", "t.json", "--report=r.html", *LINE["sort"]], cwd=here)
        assert p.returncode == 0, p.stderr
        p = run(["sort", "--checksum=samtools:table", "--report=r.json", "-o", "o.bam", "in.bam"], cwd=here)
        assert p.returncode == 0, p.stderr
        for json in [], ["--json"]:
            assert run(["markdup", "-f", "stats", *json, "in.bam", "o.bam"], cwd=here).returncode == 0
        p = run(["report", "r.json", "r.json", "-o", "page.html"], cwd=here)
        assert p.returncode == 0, p.stderr
    for name in "sum", "t.json", "r.html", "table", "r.json", "stats", "page.html":
        assert (here / name).stat().st_size > 0


def test_data_are_replaced_by_a_page_of_report(here):
    assert run(["sort", "--report=r.json", *LINE["sort"]], cwd=here).returncode == 0
    refused(here, "two.bam holds BGZF", "report", "-o", "two.bam", "r.json", "r.json")


def test_data_are_replaced_by_an_index_of_bgzip(here):
    (here / "text").write_text("hello\n" * 9)
    (here / "more").write_text("x")
    refused(here, "two.bam holds BGZF", "bgzip", "-k", "-i", "-I", "two.bam", "text")
    refused(here, "ref.fa holds FASTA", "bgzip", "-r", "-I", "ref.fa", "in.bam")
    refused(here, "more would be overwritten by an index", "bgzip", "-i", "-I", "more", "-o", "o.gz", "text", "more")
    for _ in range(2):
        assert run(["bgzip", "-k", "-f", "-i", "text"], cwd=here).returncode == 0
    assert run(["bgzip", "-r", "text.gz"], cwd=here).returncode == 0


def test_index_of_many_blocks_is_taken_for_text(here):
    """Its first byte is that of @ or >."""
    for n in 62, 64:
        (here / "x.gzi").write_bytes(n.to_bytes(8, "little") + bytes(16 * n))
        assert run(["bgzip", "-r", "-I", "x.gzi", "in.bam"], cwd=here).returncode == 0


def test_statistics_to_a_file_named_dash_are_refused(here):
    """samtools accepts it, too."""
    for _ in range(2):
        p = run(["markdup", "-O", "bam", "-f", "-", "in.bam", "-"], cwd=here)
        assert p.returncode == 0 and p.stdout[:2] == b"\x1f\x8b", p.stderr
        assert (here / "-").read_text().startswith("COMMAND: ")


# ---------------------------------------------- messages about mistakes


def test_count_that_is_too_large_is_made_smaller_silently(here):
    p = run(["sort", "-@", "100000", "--plan", "in.bam"], cwd=here)
    assert p.returncode == 0 and "100000 is too large; using 4096" in p.stderr
    p = run(["sort", "-t", "RGG", "-o", "o.bam", "in.bam"], cwd=here)
    assert p.returncode == 0 and "this is -t RG, as in samtools" in p.stderr


@pytest.mark.parametrize("line,words", [
    ("sort in.bam new.bam", "use -o new.bam"), ("sort --report x.html in.bam", "takes its value as --report=x.html"),
    ("merge --report x.json in.bam two.bam", "--report=x.json"), ("markdup --report r.txt - o.bam", "--report=r.txt"),
    ("sort --plan json in.bam", "--plan=json"), ("sort --write-index bai -o o.bam in.bam", "--write-index=bai"),
    ("sort --plan .", "is a directory"), ("merge -o o.bam in.bam .", "is a directory"), ("sort -o o.bam in.bam.csi", "is an index"),
    ("sort -o o.bam x.bai", "x.bai is an index"), ("fixmate in.bam.csi o.bam", "is an index"), ("merge -o o.bam in.bam x.crai", "is an index"),
    ("markdup ref.fa.fai o.bam", "is an index"), ("collate -O x.gzi", "is an index"), ("sormadup x.bai", "is an index"),
    ("collate", "Usage: samtools collate"), ("collate -o o.bam", "collate: no input filename specified"),
    ("srt in.bam", "Did you mean sort?"), ("markdups in.bam", "Did you mean markdup?"), ("megre x", "Did you mean merge?"),
    ("Sort in.bam", "Did you mean sort?"), ("sormarkdup in.bam", r"\Z"), ("bgzp x", "Did you mean bgzip?"),
    ("help srt", "there is no command 'srt'. Did you mean sort?"),
    ("sort --threds 2 in.bam", "but there is --threads"), ("merge --checksm=x o.bam in.bam", "but there is --checksum")])
def test_message_does_not_say_what_was_meant(here, line, words):
    (here / "x.bai").write_bytes(b"BAI\1" + bytes(12))
    (here / "x.crai").write_bytes(gzip.compress(b"0\t5\t3\t200\t50\t90\n"))
    (here / "x.gzi").write_bytes((2).to_bytes(8, "little") + bytes(32))
    refused(here, words, *line.split(), env={"PATH": "/nonexistent"})


def test_command_of_samtools_is_taken_for_a_mistyped_one(tmp_path):
    fake = script(tmp_path / "samtools", "exit 7\n")
    for word in "view", "bedcov", "cat", "split", "index", "head", "reset", "import", "depth", "dict", "checksum":
        p = run([word], env={"SAMTOOLS_UPSTREAM": str(fake)})
        assert (p.returncode, p.stderr) == (7, "")
    p = run(["srt"], env={"SAMTOOLS_UPSTREAM": str(fake)})
    assert p.returncode == 7 and "Did you mean sort?" in p.stderr


def test_useless_upstream_is_called_a_success(tmp_path):
    for value, words in (BINARY, "it is this program itself"), (tmp_path, "Is a directory"), (tmp_path / "none", "No such file"):
        p = run(["view"], env={"SAMTOOLS_UPSTREAM": str(value)})
        assert p.returncode == 1 and words in p.stderr and "Success" not in p.stderr


def test_help_does_not_mark_which_commands_run_here(tmp_path):
    lines = ["sort           sort it", "view           look", "split          sort of"]
    fake = script(tmp_path / "samtools", "printf 'Commands:\\n  -- Some\\n%s'\n" % "".join("     %s\\n" % x for x in lines))
    out = run(["help"], env={"SAMTOOLS_UPSTREAM": str(fake)}).stdout.decode()
    assert "\n   * sort           sort it\n     view           look\n     split          sort of\n" in out
    for name in "sormadup", "bgzip", "report":
        assert "\n   * %s " % name in out
        assert "\n     %s " % name in run(["help"], env={"PATH": "/nonexistent"}).stdout.decode()


def test_index_of_an_output_without_order_is_refused(here):
    """samtools accepts --write-index and makes none."""
    for command in "collate", "fixmate":
        p = run([command, "--write-index", *LINE[command]], cwd=here)
        assert p.returncode == 0 and "--write-index makes no index" in p.stderr
        assert not list(here.glob("out.bam.*"))


# ------------------------------------------------- random lines compared with samtools


FILES = ["in.bam", "two.bam", "in.sam", "x.bed", "list", "ref.fa", "new.txt", "new.bam", "in.bam.csi"]
LETTERS = {"sort": "l:um:@:o:O:T:nNt:", "merge": "h:nNru1R:f@:l:cps:b:O:t:XL:o:", "collate": "l:uo:OT:n:@:",
           "fixmate": "rpcmMuz:O:@:", "markdup": "rl:StT:O:@:f:d:cm:us"}
WRITE = ["checksum", "trace", "report", "stats", "flagstat", "idxstats", "coverage"]


def random_option(command, pick):
    """A letter, or the beginning of a long option; its value, if any, may be a file."""
    value = pick.choice([pick.choice(FILES), pick.choice(["2", "bam", "sam", "1", "t", "x"])])
    if pick.random() < .4:
        letters = re.findall(r"(.)(:?)", LETTERS[command])
        letter, takes = pick.choice(letters)
        return ["-" + letter, value] if takes else ["-" + letter]
    name = pick.choice([*SAMTOOLS[command], *COMMANDS[command], *WRITE])
    begun = name[:pick.randint(2, len(name) - (name in COMMANDS[command]))]
    if begun in COMMANDS[command]:               # --no-progress in full is another test's
        return []
    return pick.choice([["--" + begun], ["--" + begun, value], ["--%s=%s" % (begun, value)]])


def random_line(command, pick):
    """The words that both get, and those that only we support, which name a file to write."""
    words = sum((random_option(command, pick) for _ in range(pick.randint(0, 3))), [])
    operands = [pick.choice(FILES) for _ in range(pick.randint(0, 3))]
    own = ["--%s=%s" % (pick.choice(WRITE), pick.choice(FILES))] if pick.random() < .4 else []
    return pick.choice([[*words, *operands], [*operands, *words]]), own


def changed(folder, before):
    after = seen(folder)
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}


def look_at(here, command, words, own):
    """The error with this line; None: none."""
    places = [here.parent / name for name in ("theirs", "ours")]
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(here, place)
    before = [seen(place) for place in places]
    os.chdir(places[0])
    status, told = the_oracle().call(command, words, None)
    if status not in (0, 1):                     # it has crashed: in a merge of an index, for example
        return None
    theirs = changed(places[0], before[0])
    p = run([command, *words[:1], *own, *words[1:]] if words[:1] and words[0] in FILES else [command, *own, *words], cwd=places[1])
    ours = changed(places[1], before[1])
    asked = {own[0].split("=")[1]} if own else set()
    line = " ".join([command, *own, *words])
    if p.returncode and ours:
        return "%s: fails, and has changed %s" % (line, ours)
    if not p.returncode and status and not re.search(r"(^| )--in\w*\b", line):
        return "%s: is taken, and samtools refuses it: %s" % (line, told)
    if not p.returncode and not status and ours - theirs - asked:
        return "%s: changes %s, samtools %s" % (line, ours, theirs)
    if not p.returncode and asked & {"in.bam", "two.bam", "in.sam", "ref.fa", "in.bam.csi"} & ours - theirs:
        return "%s: replaces data" % line
    return None


def test_random_line_writes_what_nobody_asked_for(here, tmp_path, monkeypatch):
    """The only files written are those that samtools writes, too, and files that an option of ours names in full."""
    monkeypatch.chdir(here)
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in list(here.iterdir()):
        if path.is_file():
            shutil.copy(path, folder)
    pick, wrong = random.Random(55), []
    for _ in range(int(os.environ.get("TEST_LINES", 60))):
        command = pick.choice(list(LETTERS))
        fault = look_at(folder, command, *random_line(command, pick))
        wrong += [fault] if fault else []
    assert not wrong, "\n".join(wrong)
