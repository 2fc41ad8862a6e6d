"""The command ``pipistrelle``, and ``python -m pipistrelle.cli``: it can be interrupted from its first moment on."""

import signal


def main() -> None:
    """Run the command line; until it is there, an interrupt ends the process without a word."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from pipistrelle.cli.main import main as command  # takes its time

    command()


if __name__ == "__main__":
    main()
