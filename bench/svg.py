# SPDX-License-Identifier: MIT
"""Plain SVG for the plots of bars.py, dilate.py and paper.py. Elements are strings, sizes are pixels, words may have
markup."""


def text(x, y, words, more=""):
    return '<text x="%g" y="%g"%s>%s</text>' % (x, y, more and " " + more, words)


def rule(y, width, label):
    """A grey line across a panel, with its value at the left."""
    return '<path d="M0 %g h%d" stroke="#ddd"/>' % (y, width) + text(-6, y + 4, label, 'text-anchor="end"')


def tick(x, y, label):
    """A value below a panel."""
    return text(x, y + 14, label, 'text-anchor="middle"')


def title(words):
    """Above a panel."""
    return text(0, -8, words, 'font-weight="bold"')


def curve(points, style):
    return '<polyline fill="none" %s points="%s"/>' % (style, " ".join("%.1f,%.1f" % point for point in points))


def group(left, top, elements):
    return ['<g transform="translate(%d,%d)">' % (left, top), *elements, "</g>"]


def save(path, width, height, elements):
    head = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" ' % (width, height),
            'font-family="sans-serif" font-size="10">', '<rect width="100%" height="100%" fill="#fff"/>']
    with open(path, "w") as file:
        file.write("\n".join([*head, *elements, "</svg>"]) + "\n")
