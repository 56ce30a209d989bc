"""Makes shell scripts that complete commands, options and file names after `chatmemory`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_BASH = """\
# eval "$(chatmemory completion bash)", such as in ~/.bashrc
_chatmemory() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{names}"
    else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
        case "$current" in -*) ;; *) [ "${{COMP_WORDS[1]}}" = completion ] || return ;; esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _chatmemory chatmemory"""

_ZSH = """\
# eval "$(chatmemory completion zsh)", such as in ~/.zshrc
autoload -Uz compinit bashcompinit
(( $+functions[compdef] )) || compinit
bashcompinit
"""

_FISH = """\
# chatmemory completion fish | source, such as in ~/.config/fish/config.fish
"""


def completion(shell: str, words: Mapping[str, str], options: Mapping[str, Sequence[str]]) -> str:
    """Return the completion script for a shell, which must be one of SHELLS.

    `words` maps the name of each command to its description. `options` maps the name of each
    command to the list of its options.
    """
    return SHELLS[shell](words, options)


def _bash(words: Mapping[str, str], options: Mapping[str, Sequence[str]]) -> str:
    cases = [
        f'            {name}) words="{" ".join(_after(name, options))}" ;;' for name in options
    ]
    return _BASH.format(names=" ".join(words), cases="\n".join(cases))


def _zsh(words: Mapping[str, str], options: Mapping[str, Sequence[str]]) -> str:
    return _ZSH + _bash(words, options).partition("\n")[2]


def _fish(words: Mapping[str, str], options: Mapping[str, Sequence[str]]) -> str:
    lines = []
    for name, description in words.items():
        quoted = description.replace("'", "\\'")
        lines.append(f"complete -c chatmemory -f -n __fish_use_subcommand -a {name} -d '{quoted}'")
        names = f"-n '__fish_seen_subcommand_from {name}'"
        lines += [f"complete -c chatmemory {names} -l {each[2:]}" for each in options[name]]
    shells = " ".join(SHELLS)
    lines.append(
        f"complete -c chatmemory -f -n '__fish_seen_subcommand_from completion' -a '{shells}'"
    )
    return _FISH + "\n".join(lines)


def _after(name: str, options: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return list(SHELLS) if name == "completion" else options[name]


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
