"""XML texts, read element by element: nothing outside the text is looked at, and no entity is expanded."""

import re
from abc import ABC, abstractmethod
from typing import ClassVar, Final
from xml.parsers import expat

from pipistrelle.protocol.base.errors import PipistrelleError

_BEFORE: Final = re.compile(r"\ufeff?[ \t\r\n]*(<\?xml\s[^<>]*\?>)?")
#: put in place of the text's own declaration: a reference to an entity is an error although there is a document type
_STANDALONE: Final = '<?xml version="1.0" standalone="yes"?>'


class XmlReader(ABC):
    """Follows the elements of one text.

    Parameters
    ----------
    where
        what the text is called in messages, usually the file's name.
    """

    #: what is raised
    error: ClassVar[type[PipistrelleError]]
    #: what the text is, in messages
    subject: ClassVar[str]
    #: what those who write no XML mostly lack
    hint: ClassVar[str]

    def __init__(self, where: str) -> None:
        self.where = where
        self._lines_before = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.begin
        self.parser.EndElementHandler = self.end

    @abstractmethod
    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """Take the begin of an element."""

    @abstractmethod
    def end(self, name: str) -> None:
        """Take the end of an element."""

    def line(self) -> int:
        """Return the number of the line that is being read, from 1."""
        return self.parser.CurrentLineNumber + self._lines_before

    def parse(self, text: str) -> None:
        """Follow the elements of the whole text; blank lines may be before its declaration.

        Raises
        ------
        PipistrelleError
            of the reader's class, if the text is no XML (with line and column) or declares entities.
        """
        before, entity, _ = text.partition("<!ENTITY")
        if entity:  # looked for before parsing: expat would go on expanding them after a handler's refusal
            raise self.error(
                f"{self.subject} declares no entities",
                where=f"{self.where}, line {before.count(chr(10)) + 1}",
                expected="no <!ENTITY ...>",
                hint="Write out what it stands for.",
            )
        found = _BEFORE.match(text)
        before = found[0] if found else ""
        self._lines_before = before.count("\n")
        try:
            self.parser.Parse(_STANDALONE + text[len(before) :], True)
        except expat.ExpatError as error:
            column = error.offset + 1
            if error.lineno == 1:
                column += len(before) - before.rfind("\n") - 1 - len(_STANDALONE)
            raise self.error(
                f"this is not XML: {expat.ErrorString(error.code)}",
                where=f"{self.where}, line {error.lineno + self._lines_before}, column {column}",
                hint=self.hint,
            ) from None
