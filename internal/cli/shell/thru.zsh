#compdef thru
_thru() {
    local -a lines
    local kind
    lines=("${(@f)$("${words[1]}" VERB zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    kind=${lines[1]}
    lines=("${(@)lines[2,-1]}")
    case $kind in
        files) (( $#lines )) && _describe thru lines; _files ;;
        folders) _files -/ ;;
        more) _describe thru lines -S '' ;;
        words) _describe thru lines ;;
    esac
}
if [ "$funcstack[1]" = _thru ]; then _thru "$@"; else compdef _thru thru; fi
