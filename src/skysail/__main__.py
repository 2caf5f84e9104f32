"""`python -m skysail`: the command."""

from skysail.cli.main import main

if __name__ == "__main__":
    main()
