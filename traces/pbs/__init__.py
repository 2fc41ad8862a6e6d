"""Accounting logs of PBS Pro, OpenPBS and Torque."""
