import argparse
import importlib
import pkgutil
import sys

import bench


def main() -> None:
    names = [module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_")]
    parser = argparse.ArgumentParser(prog="python -m bench", description=bench.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(names)}")
    chosen = parser.parse_args().names or names
    if unknown := set(chosen) - set(names):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    for name in chosen:
        print(f"== {name}", flush=True)
        sys.argv = [name]
        importlib.import_module(f"bench.{name}").main()
        sys.stdout.flush()


if __name__ == "__main__":
    main()
