"""Text that would act on a terminal or on a CI service, and a search for it in what the program prints."""

import re

# Clear the screen, set the title, C1 control, DEL, backspaces, reversed text, zero width, line separator, tag letters.
MARKS = "\x1b[2J\x1b]0;t\x07\x9b2J\x7f\b\r\u202e\u2066\u061c\u200b\u2028\ufeff\U000e0041\ufffe"
COMMAND = "\n::error::injected\n \u00a0::add-mask::x\n##[error]y ##vso[task.complete result=Succeeded]z ##teamcity[buildStop]"
TEXT = "x" + MARKS + COMMAND

# Our own colours.
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff"
                       "\ufdd0-\ufdef\U000e0000-\U000e007f\udc80-\udcff]")


def faults(text, colour=False, annotations=False):
    """What no output may have. `text` was decoded with surrogateescape, so bytes that are not UTF-8 are seen."""
    if colour:
        text = COLOUR.sub("", text)
    found = [f"{match.group()!r} at {match.start()} in {text[max(0, match.start() - 60):match.end() + 20]!r}"
             for match in FORBIDDEN.finditer(text)]
    for line in text.split("\n"):
        if line.strip().startswith("::") and not (annotations and re.match(r"::(error|warning|notice)[ :]", line)):
            found.append(f"a workflow command: {line!r}")
        if re.search(r"##\w*\[", line) and not (annotations and line.startswith("::")):
            found.append(f"an old workflow command: {line!r}")
        if annotations and line.startswith("::") and line.startswith(("::error::injected", "::add-mask")):
            found.append(f"an injected annotation: {line!r}")
    return found
