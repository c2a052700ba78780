"""The one error that users see: a sentence that says what is wrong, where, and what to do."""


class DragomanError(Exception):
    """Bad input, a missing file, a policy that does not fit: shown as a sentence, exit status 2."""
