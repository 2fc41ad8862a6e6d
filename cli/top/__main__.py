"""``python -m pipistrelle`` is the command ``pipistrelle``."""

from pipistrelle.cli.main import main

if __name__ == "__main__":
    main()
