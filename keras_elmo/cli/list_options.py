"""Options that are followed by several values."""

from typing import Any

from typer.core import TyperCommand


def list_options(*names: str) -> type[TyperCommand]:
    """A command's class that lets options be followed by several words: all up to the next option are their own.

    Args:
        names: The options, with their dashes.
    """

    class ListOptions(TyperCommand):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            spread: list[str] = []
            inside: str | None = None
            for place, arg in enumerate(args):
                if arg == "--":
                    spread += args[place:]
                    break
                if arg in names:
                    inside = arg
                    if all(_is_option(following) for following in args[place + 1 : place + 2]):
                        ctx.fail(
                            f"Option '{arg}' must be followed by words; one that begins with a dash is given as "
                            f"{arg}=-x"
                        )
                elif _is_option(arg):
                    name = arg.partition("=")[0]
                    inside = name if name in names else None
                    spread.append(arg)
                else:
                    spread += [inside, arg] if inside else [arg]
            return super().parse_args(ctx, spread)

    return ListOptions


def _is_option(arg: str) -> bool:
    return arg.startswith("-") and arg != "-"
