"""Read XML element by element, without external files or entities."""

import re
from abc import ABC, abstractmethod
from typing import ClassVar, Final
from xml.parsers import expat

from pipistrelle.protocol.base.errors import PipistrelleError

_BEFORE: Final = re.compile(r"\ufeff?[ \t\r\n]*(<\?xml\s[^<>]*\?>)?")
#: replaces the text's own XML declaration, so that undefined entities are errors even with a document type
_STANDALONE: Final = '<?xml version="1.0" standalone="yes"?>'


class XmlReader(ABC):
    """Base class of XML readers: calls `begin` and `end` for each element.

    Args:
        where: the name of the text in messages, usually a file name.
    """

    #: the class of errors
    error: ClassVar[type[PipistrelleError]]
    #: what the text is, in messages
    subject: ClassVar[str]
    #: advice for texts that are not XML
    hint: ClassVar[str]

    def __init__(self, where: str) -> None:
        self.where = where
        self._lines_before = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.begin
        self.parser.EndElementHandler = self.end

    @abstractmethod
    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""

    @abstractmethod
    def end(self, name: str) -> None:
        """Handle the end of an element."""

    def line(self) -> int:
        """Return the number of the line being read, from 1."""
        return self.parser.CurrentLineNumber + self._lines_before

    def parse(self, text: str) -> None:
        """Parse the whole text; blank lines may precede the XML declaration.

        Raises:
            PipistrelleError: the text is not XML (with line and column), or declares entities. The attribute `error` is
                the class of the exception.
        """
        before, entity, _ = text.partition("<!ENTITY")
        if entity:  # checked before parsing: expat would keep expanding entities after a handler refused them
            raise self.error(
                f"{self.subject} declares no entities",
                where=f"{self.where}, line {before.count(chr(10)) + 1}",
                expected="no <!ENTITY ...>",
                hint="Write out its text instead.",
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
