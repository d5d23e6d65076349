# fish completion for winkfs
function __winkfs_complete
    set -l words (commandline -opc) (commandline -ct)
    winkfs __complete -- $words[2..-1] 2>/dev/null
end
complete -c winkfs -a '(__winkfs_complete)'
