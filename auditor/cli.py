"""The command line: which command, its options, its exit code. The only place that ends the process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from auditor import __version__
from auditor.errors import AuditorError

if TYPE_CHECKING:
    import argparse

EXIT_DONE, EXIT_FOUND, EXIT_NOT_DONE, EXIT_UNDECIDED = 0, 1, 2, 3


class Command(NamedTuple):
    """One command: `module` holds `add_arguments(parser)` and `run(options) -> int`; imported when it is asked for."""

    name: str
    module: str
    summary: str


COMMANDS: tuple[Command, ...] = (
    Command("scan", "auditor.commands.scan", "audit files and folders"),
    Command(
        "inventory", "auditor.commands.inventory", "list packages, images and launches with their verdicts, no findings"
    ),
    Command("capacity", "auditor.commands.capacity", "the KV pool of one launch, worked out in the open"),
    Command(
        "diff", "auditor.commands.diff", "what changed between two revisions that moves the KV pool or the version"
    ),
    Command("gate", "auditor.commands.gate", "pool against context, read from the running engine; fails closed"),
    Command("canary", "auditor.commands.canary", "content check of a running engine with sentinels at the limit"),
    Command("latency", "auditor.commands.latency", "long prompts that answer too fast, from request logs"),
    Command("rules", "auditor.commands.rules", "list the rules"),
    Command("explain", "auditor.commands.explain", "one rule: why, what to do, bad and good examples"),
)


def _parser(prog: str, description: str, **options: Any) -> argparse.ArgumentParser:
    """A parser for which wrong usage is one line and exit 2, with the command that shows the options."""
    import argparse  # here, because the short way of `scan` needs none

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            unknown = message.removeprefix("unrecognized arguments: ")
            if unknown != message:
                from auditor.nearest import nearest

                near = nearest(unknown.split("=")[0].split()[0], self._option_string_actions)
                message += f"; did you mean `{near}`?" if near else ""
            sys.stderr.write(f"{self.prog}: {message} (see `{self.prog} --help`)\n")
            raise SystemExit(EXIT_NOT_DONE)

    return Parser(prog=prog, description=description, allow_abbrev=False, **options)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Errors of the call are one line on stderr and 2."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in arguments if not word.startswith("-")), "")
    command = next((command for command in COMMANDS if command.name == name), None)
    try:
        if command is None or arguments[0] != name:
            return _top(arguments)
        if name == "scan":
            from auditor.quick import answer

            known = answer(arguments[1:])
            if known is not None:
                from auditor.standard_output import print_text

                print_text(known)
                return EXIT_DONE
        parser = _parser(f"auditor {name}", command.summary)
        module = importlib.import_module(command.module)
        module.add_arguments(parser)
        options = parser.parse_args(arguments[1:])
        return int(module.run(options))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else EXIT_NOT_DONE
    except AuditorError as error:
        _complain(f"auditor: {error}")
        return EXIT_NOT_DONE
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing more to say, and no traceback at shutdown.
        from auditor.standard_output import drop

        drop()
        return EXIT_NOT_DONE
    except KeyboardInterrupt:
        _complain("auditor: interrupted")
        return 130
    except Exception as error:  # noqa: BLE001 - a bug of ours: exit 1 would read as "something was found"
        _complain(f"auditor: not done, a fault of auditor itself: {type(error).__name__}: {error}")
        return EXIT_NOT_DONE


def _top(arguments: Sequence[str]) -> int:
    listing = "\n".join(f"  {command.name:<10} {command.summary}" for command in COMMANDS)
    import argparse

    parser = _parser(
        "auditor",
        "Finds out whether a repository is exposed to cross-tenant KV-cache leaks in LLM serving.",
        epilog=f"commands:\n{listing}\n\n`auditor COMMAND --help` shows the options of one command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="auditor COMMAND [OPTION ...] [PATH ...]",
    )
    parser.add_argument("--version", action="version", version=f"auditor {__version__}")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args(arguments)
    if options.command is None:
        parser.print_help()
        return EXIT_NOT_DONE
    from auditor.nearest import hint

    names = [command.name for command in COMMANDS]
    meant = next((word for word in arguments if word in names), None)
    if meant is not None:
        _complain(f"auditor: the command comes first: `auditor {meant} ...`")
        return EXIT_NOT_DONE
    near = hint(options.command, names, "commands: " + ", ".join(names))
    _complain(f"auditor: there is no command `{options.command}`; {near}")
    return EXIT_NOT_DONE


def _complain(line: str) -> None:
    from auditor.visible import visible

    line = visible(line)
    sys.stderr.write(
        line.encode(sys.stderr.encoding or "utf-8", "replace").decode(sys.stderr.encoding or "utf-8") + "\n"
    )


def entry_point() -> None:
    """The console script."""
    sys.exit(main())
