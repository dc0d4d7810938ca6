"""`python -m gradientdice` is the command `gradientdice`."""

from gradientdice.cli.main import main

if __name__ == "__main__":
    main()
