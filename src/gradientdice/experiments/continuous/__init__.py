"""Continuous states with nothing tuned: pendulum, CartPole and MountainCar."""
