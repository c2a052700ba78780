"""The workshop: data, nets, losses, recipes, export. The only room that imports torch."""
