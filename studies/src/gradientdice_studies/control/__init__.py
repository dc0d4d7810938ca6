"""Control tasks with trained policies: does the answer decide?"""
