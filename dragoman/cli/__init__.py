"""The command line: one file per command, loaded only when it is called."""

import sys


def main() -> None:
    """Run `dragoman`; a DragomanError becomes a sentence and exit status 2."""
    from dragoman.cli.app import dragoman
    from dragoman.errors import DragomanError

    try:
        dragoman(prog_name="dragoman")
    except DragomanError as error:
        print(f"dragoman: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output went away (`dragoman score x | head`): not an error of ours.
        sys.stderr.close()
        sys.exit(0)
