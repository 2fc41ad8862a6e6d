"""Tables of a study for LaTeX, with the rules of the package booktabs."""

from collections.abc import Sequence
from typing import Final

#: {character: how LaTeX writes it}
_ESCAPED: Final = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{one: f"\\{one}" for one in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "±": r"$\pm$",
        "*": r"\textsuperscript{*}",
    }
)
_HEAD: Final = "% \\usepackage{booktabs}"


def latex_table(title: str, columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table as LaTeX text: the first column is text, the others are numbers.

    Args:
        title: the caption.
        lines: the cells; a line with fewer cells than columns is a heading.
    """
    body: list[str] = []
    for line in lines:
        if len(line) < len(columns):
            body += [*([r"\addlinespace"] if body else [])]
            body.append(rf"\multicolumn{{{len(columns)}}}{{@{{}}l}}{{{latex_text(' '.join(line))}}} \\")
        else:
            body.append(_row([line[0], *map(_number, line[1:])]))
    parts = [
        _HEAD,
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(title)}}}",
        rf"\begin{{tabular}}{{@{{}}l{'r' * (len(columns) - 1)}@{{}}}}",
        r"\toprule",
        _row(columns),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(parts) + "\n"


def latex_text(text: str) -> str:
    """Return a text with LaTeX's special characters escaped."""
    return text.translate(_ESCAPED)


def _number(cell: str) -> str:
    """Return a number as LaTeX text.

    The result has a real minus sign in "-1", and is a dash for "-" (no value).
    """
    if cell == "-":
        return "--"
    return f"\N{MINUS SIGN}{cell[1:]}" if cell.startswith("-") and cell[1:2].isdigit() else cell


def _row(cells: Sequence[str]) -> str:
    return " & ".join(latex_text(cell).replace("\N{MINUS SIGN}", "$-$") for cell in cells) + r" \\"
