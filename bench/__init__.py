"""How much work Ledgerstone's promises cost: CPU time, medians, and ratios to what nobody could leave out."""
