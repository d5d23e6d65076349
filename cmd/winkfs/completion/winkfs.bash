# bash completion for winkfs
_winkfs() {
    local words=("${COMP_WORDS[@]:1:COMP_CWORD}") line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(winkfs __complete -- "${words[@]}" 2>/dev/null)
}
complete -o default -F _winkfs winkfs
