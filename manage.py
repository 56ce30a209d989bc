#!/usr/bin/env python
from inspector.__main__ import main

if __name__ == "__main__":
    main()
