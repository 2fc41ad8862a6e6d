"""What runs tell: reports, pages, explanations, estimates and canonical cases."""
