"""The options of checkpoints: where and how often they are written, and whether training goes on from one."""

from __future__ import annotations

from typing import Any

from pydtconv.cli.errors import CommandError


def add_arguments(parser: Any) -> None:
    parser.add_argument("--checkpoint", metavar="FOLDER", help="write checkpoints of all of training into this folder")
    parser.add_argument("--save-every", type=int, metavar="STEPS", help="steps between two (default: an epoch)")
    parser.add_argument("--keep", type=int, metavar="K", help="how many stay, the last ones (default: 3)")
    parser.add_argument("--resume", action="store_true", help="go on from the newest one, where there is one")


def callbacks_of(args: Any) -> list[Any]:
    """The callback that the options ask for, if any.  Raises CommandError where they do not go together."""
    from pydtconv import replica
    from pydtconv.callbacks import BackupAndRestore
    from pydtconv.checkpoints import Checkpoints

    if args.checkpoint is None:
        for option in "save_every", "keep", "resume":
            if getattr(args, option):
                raise CommandError(f"--{option.replace('_', '-')}: expected --checkpoint FOLDER with it")
        return []
    try:
        checkpoints = Checkpoints(args.checkpoint, keep=3 if args.keep is None else args.keep)
        save_freq = "epoch" if args.save_every is None else args.save_every
        backup = BackupAndRestore(checkpoints, save_freq=save_freq, delete_checkpoint=False)
        if not replica.current().is_main:
            return [backup]
        checkpoints.prepare()
    except ValueError as error:
        raise CommandError(f"--keep, --save-every: {error}") from None
    except OSError as error:
        raise CommandError(f"--checkpoint: {error}") from None
    if checkpoints.paths and not args.resume:
        raise CommandError(f"--checkpoint: {args.checkpoint} holds checkpoints: go on with --resume, or empty it")
    if args.resume and not checkpoints.paths:
        print(f"no checkpoint in {args.checkpoint}: training starts from the beginning", flush=True)
    return [backup]
