"""Optional dependencies: a missing one is a sentence with the command that installs it."""

import importlib
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Imports a module that comes with one of the package's extras.

    Args:
        module: Name of the module.
        extra: Name of the extra that brings it.

    Raises:
        ModuleNotFoundError: if it is not installed, with the command to install it.

    Example:
    >>> require("json", "plot").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != package:
            raise  # it is there, and lacks something itself
        raise ModuleNotFoundError(
            f"{package} is not installed. Install it with: pip install {package} (extra `{extra}` of keras-elmo)",
            name=error.name,
        ) from error
