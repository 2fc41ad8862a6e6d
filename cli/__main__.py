"""Entry points of ``pipistrelle`` and ``pipistrelle-batsim``.

Ctrl-C ends both without a traceback at any time.
"""

import signal


def _let_interrupts_end() -> None:
    """Let Ctrl-C end this process without a traceback.

    This also works while modules are still being imported.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """Run ``pipistrelle``."""
    _let_interrupts_end()
    from pipistrelle.cli.main import main as run  # slow import

    run()


def batsim() -> None:
    """Run ``pipistrelle-batsim``."""
    _let_interrupts_end()
    from pipistrelle.cli.main import main as run  # slow imports
    from pipistrelle.cli.run.batsim import command

    run(program=command)


if __name__ == "__main__":
    main()
