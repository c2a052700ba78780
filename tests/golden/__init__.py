"""Values that SimulEval, OmniSTEval, simulstream, mweralign and FBK's script computed themselves.

README.md says which versions, and what their rules are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent


def golden_json(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))
