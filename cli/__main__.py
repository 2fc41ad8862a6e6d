"""Entry point of ``pipistrelle``; it can be interrupted from the first moment."""

import signal


def main() -> None:
    """Run the command line; Ctrl-C while modules are still being imported exits without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from pipistrelle.cli.main import main as command  # slow import

    command()


if __name__ == "__main__":
    main()
