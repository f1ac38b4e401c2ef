from . import main

if __name__ == "__main__":  # a process that is started from here must not start again
    main()
