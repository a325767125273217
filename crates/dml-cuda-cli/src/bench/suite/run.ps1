# Times the models of this folder with DxDispatch, a log each into logs\. `dml-cuda import` reads them.
#   powershell -ExecutionPolicy Bypass -File run.ps1 -DxDispatch .\dxdispatch.exe
# -Adapter is part of an adapter's name. Everything else is an option of DxDispatch: --queue_type direct --disable_agility_sdk
[CmdletBinding(PositionalBinding = $false)]
param(
    [string]$DxDispatch = "dxdispatch.exe",
    [string]$Adapter = "",
    [Parameter(ValueFromRemainingArguments = $true)][string[]]$Options = @()
)

function Stop-Here([string]$why) {
    Write-Host "ERROR: $why" -ForegroundColor Red
    exit 1
}

# A path is the caller's. A bare name may be in the caller's folder or on the PATH.
if (Test-Path -LiteralPath $DxDispatch -PathType Leaf) {
    $path = (Resolve-Path -LiteralPath $DxDispatch).ProviderPath
} else {
    $command = Get-Command -Name $DxDispatch -CommandType Application -ErrorAction SilentlyContinue | Select-Object -First 1
    if (-not $command) { Stop-Here "-DxDispatch is '$DxDispatch', must be the path of dxdispatch.exe, or a name on the PATH" }
    $path = $command.Path
}
$program = Split-Path -Leaf $path
if ($Adapter) { $Options = @($Options) + @("-a", $Adapter) }
# DxDispatch's options end at the first space, and cmd reads the other characters.
foreach ($word in @($program) + @($Options)) {
    if ($word -match '[\s&|<>^%"]') { Stop-Here "'$word' has a space or one of & | < > ^ % `", must have none: DxDispatch cannot read it" }
}
if ($PSScriptRoot.StartsWith("\\")) { Stop-Here "$PSScriptRoot is on the network, must be on a drive" }

# cmd writes the bytes as they are. PowerShell 5.1 writes UTF-16 and makes error records of stderr.
function Invoke-DxDispatch([string]$arguments, [string]$log, [string]$redirect = ">") {
    cmd /d /c "$program $arguments $Options $redirect logs\$log.log 2>&1"
}

$timed = @'
@TIMED@
'@
$outputs = @'
@OUTPUTS@
'@
$PSNativeCommandUseErrorActionPreference = $false
$oldPath = $env:PATH
Push-Location -LiteralPath $PSScriptRoot
try {
    # By its bare name, so that no argument has a space.
    $env:PATH = (Split-Path -Parent $path) + ";" + $env:PATH
    New-Item -ItemType Directory -Force -Path logs | Out-Null
    # What runs here. DxDispatch exits with 1 where there is no model.
    Invoke-DxDispatch "-S" "dependencies"
    if (-not (Select-String -Quiet -SimpleMatch -Pattern "DirectML" -Path logs\dependencies.log)) {
        Stop-Here "$path does not start: with -S it prints no version of DirectML and exits with $LASTEXITCODE. Its DLLs must be next to it"
    }
    Invoke-DxDispatch "-s" "adapters"
    $failed = 0
    foreach ($line in $timed -split "\r?\n") {
        $name, $dispatches = $line -split " "
        Write-Host $name
        # Every sample with four decimals, then medians with six, for short work.
        Invoke-DxDispatch "$name.json -i 31 -w 1 -r $dispatches -v 2" $name
        if ($LASTEXITCODE -ne 0) {
            $failed++
            continue
        }
        foreach ($run in 1..5) { Invoke-DxDispatch "$name.json -i 31 -w 1 -r $dispatches -v 0" $name ">>" }
    }
    # What these write is compared byte by byte.
    foreach ($name in $outputs -split "\r?\n") {
        Remove-Item -Path "logs\$name.bin" -ErrorAction SilentlyContinue
        Invoke-DxDispatch "$name.json --output_path logs" $name
        if ($LASTEXITCODE -ne 0) { $failed++ }
    }
    if ($failed -gt 0) { Write-Host "$failed models failed. The next command keeps the causes." }
    Write-Host "Next: dml-cuda import `"$PSScriptRoot\logs`" --suite `"$PSScriptRoot`" -o windows.json"
} finally {
    Pop-Location
    $env:PATH = $oldPath
}
