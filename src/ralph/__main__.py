"""The command `ralph`. What must be quick is answered before anything is imported."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-v"]):
        from ralph import __version__

        print(f"ralph {__version__}")
        return
    from ralph.cli.main import run_command_line

    sys.exit(run_command_line(arguments))


if __name__ == "__main__":
    main()
