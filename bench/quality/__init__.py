"""How well recall brings back what answers a question: sets of questions with known answers, through the product."""
