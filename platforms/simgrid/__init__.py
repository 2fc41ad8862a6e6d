"""Machines in SimGrid's XML, as Batsim reads them."""
