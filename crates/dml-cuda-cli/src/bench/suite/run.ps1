# Times the models of this folder with DxDispatch, a log each into logs\. `dml-cuda import` reads them.
#   powershell -ExecutionPolicy Bypass -File run.ps1 -DxDispatch .\dxdispatch.exe
# -Adapter is part of an adapter's name. Everything else is an option of DxDispatch: --queue_type direct --disable_agility_sdk
# There is no param(), because PowerShell would read -d, -v, -i and -w as its own.
function Stop-Here([string]$why) {
    Write-Host "ERROR: $why" -ForegroundColor Red
    exit 1
}

$DxDispatch = "dxdispatch.exe"
$Adapter = ""
$Options = @()
for ($at = 0; $at -lt $args.Count; $at++) {
    if ($args[$at] -notin "-DxDispatch", "-Adapter") {
        $Options += "$($args[$at])"
        continue
    }
    $name = $args[$at++]
    if ($at -ge $args.Count) { Stop-Here "$name has no value" }
    if ($name -eq "-Adapter") { $Adapter = "$($args[$at])" } else { $DxDispatch = "$($args[$at])" }
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
if ($Adapter) { $Options += "-a", $Adapter }
# DxDispatch's options end at the first space, and cmd reads the other characters.
foreach ($word in @($program) + $Options) {
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
    Invoke-DxDispatch "-S" "dependencies.new"
    if (-not (Select-String -Quiet -Pattern "^-*DirectML" -Path logs\dependencies.new.log)) {
        Remove-Item -Path logs\dependencies.new.log
        Stop-Here "$path does not start: with -S it prints no version of DirectML and exits with $LASTEXITCODE. Its DLLs must be next to it"
    }
    Move-Item -Force -Path logs\dependencies.new.log -Destination logs\dependencies.log
    Invoke-DxDispatch "-s" "adapters"
    $failed = 0
    foreach ($line in $timed -split "\r?\n") {
        $name, $dispatches = $line -split " "
        Write-Host $name
        # Every sample with four decimals, then medians with six, for short work.
        foreach ($run in 0..5) {
            $verbose, $redirect = if ($run -eq 0) { 2, ">" } else { 0, ">>" }
            Invoke-DxDispatch "$name.json -i 31 -w 1 -r $dispatches -v $verbose" $name $redirect
            if ($LASTEXITCODE -ne 0) {
                $failed++
                break
            }
        }
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
