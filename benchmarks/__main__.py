"""Run the benchmarks: `python -m benchmarks` all of them, `python -m benchmarks scoring` one.

What follows a name and begins with a dash is for that one: `python -m benchmarks serve --help`.

Every module here with a `run()` is a benchmark. It measures both sides in one go and prints
ratios, which depend little on the machine.
"""

import ast
import importlib
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from dragoman.errors import DragomanError


def names() -> list[str]:
    """The modules beside this one that have a `run`."""
    found = []
    for path in sorted(Path(__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body):
            found.append(path.stem)
    return found


def main() -> None:
    """Run what is asked for; a benchmark that fails does not keep the others from running. What
    the user got wrong is a sentence."""
    known = names()
    dash = next((i for i, word in enumerate(sys.argv) if word.startswith("-")), len(sys.argv))
    wanted, options = sys.argv[1:dash] or known, sys.argv[dash:]
    if options and len(wanted) != 1:
        _refuse("Options follow the name of one benchmark.")
    unknown = [name for name in wanted if name not in known]
    if unknown:
        _refuse(f"There is no benchmark {unknown[0]}; there are {', '.join(known)}.")
    failed, refused = [], False
    for name in wanted:
        print(f"== {name} ==", flush=True)
        try:
            importlib.import_module(f"benchmarks.{name}").run(*([options] if options else []))
        except DragomanError as error:
            print(f"{name}: {error}", file=sys.stderr)
            refused = True
        except Exception:
            traceback.print_exc()
            failed.append(name)
        print(flush=True)
    if failed:
        sys.exit(f"Failed: {', '.join(failed)}.")
    if refused:
        sys.exit(2)


def _refuse(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
