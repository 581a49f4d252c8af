"""What is known of torch.compile's losses: findings, rules, the registry, the user's source."""
