"""Ten policies on one log: are differences covered, is the best one found, are deployments safe?"""
