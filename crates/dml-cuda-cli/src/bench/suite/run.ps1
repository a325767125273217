# Times the models of this folder with DxDispatch, a log each into logs\; `dml-cuda import logs --suite .` reads them.
param([string]$DxDispatch = "dxdispatch.exe", [string]$Adapter = "")
Set-Location $PSScriptRoot
New-Item -ItemType Directory -Force logs | Out-Null
$device = if ($Adapter) { @("-a", $Adapter) } else { @() }
$timed = @'
@TIMED@
'@
foreach ($line in $timed -split "\r?\n") {
    $name, $dispatches = $line -split " "
    Write-Host $name
    # Every sample with four decimals, then medians with six, for short work.
    & $DxDispatch "$name.json" -i 31 -w 1 -r $dispatches -v 2 @device *> "logs\$name.log"
    foreach ($run in 1..5) { & $DxDispatch "$name.json" -i 31 -w 1 -r $dispatches -v 0 @device *>> "logs\$name.log" }
}
# What these write is compared byte by byte.
$checks = @'
@CHECKS@
'@
foreach ($name in $checks -split "\r?\n") {
    & $DxDispatch "$name.json" --output_path logs @device *> "logs\$name.log"
}
