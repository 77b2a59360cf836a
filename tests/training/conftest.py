"""Fixtures of the tests of training; the other half is imported by name: `import conftest_training`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from conftest_training import straight, text, train  # noqa: F401
