"""``python -m pipistrelle.cli`` is the command ``pipistrelle``."""

from pipistrelle.cli.main import main

main()
