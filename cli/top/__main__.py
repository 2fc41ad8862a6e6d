"""``python -m pipistrelle`` is the command ``pipistrelle``."""

from pipistrelle.cli.__main__ import main

if __name__ == "__main__":
    main()
