# fish completion of thru
function __thru_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l lines ($words[1] VERB fish $words[2..-1] "$word" 2>/dev/null)
    switch "$lines[1]"
        case files
            printf '%s\n' $lines[2..-1]
            __fish_complete_path "$word"
        case folders
            __fish_complete_directories "$word"
        case '*'
            printf '%s\n' $lines[2..-1]
    end
end
complete -c thru -f -a '(__thru_complete)'
