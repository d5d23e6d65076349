#compdef winkfs
# zsh completion for winkfs
_winkfs() {
    local -a candidates
    candidates=("${(@f)$(winkfs __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    candidates=(${candidates:#})
    if (( ${#candidates} )); then
        compadd -- "${candidates[@]}"
    else
        _files
    fi
}
if [ "$funcstack[1]" = "_winkfs" ]; then
    _winkfs "$@"
else
    compdef _winkfs winkfs
fi
