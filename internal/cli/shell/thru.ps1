# PowerShell completion of thru
Register-ArgumentCompleter -Native -CommandName thru -ScriptBlock {
    param($word, $ast, $cursor)
    $line = $ast.ToString()
    $end = $cursor - $ast.Extent.StartOffset # other commands may stand before it
    if ($line.Length -gt $end) { $line = $line.Substring(0, $end) }
    if ($word -eq '') { $line += ' ' }
    $thru = $ast.CommandElements[0].Value
    $kind, $lines = & $thru VERB powershell $line 2>$null
    if ($kind -ne 'words' -and $kind -ne 'more') { return } # PowerShell completes the names of files
    foreach ($one in $lines) {
        $text, $help = $one -split "`t", 2
        if (-not $help) { $help = $text }
        [System.Management.Automation.CompletionResult]::new($text, $text, 'ParameterValue', $help)
    }
}
