@echo off
rem Builds the small compiler in cpp\ into cpp\build\<preset>.
rem   build_cpp.bat [Debug|Release] [--test]
setlocal
set preset=release
set config=Release
set test=no

:arguments
if "%~1"=="" goto build
if /i "%~1"=="Debug" (
  set preset=debug
  set config=Debug
) else if /i "%~1"=="Release" (
  set preset=release
  set config=Release
) else if "%~1"=="--test" (
  set test=yes
) else (
  echo usage: %~nx0 [Debug^|Release] [--test] 1>&2
  exit /b 2
)
shift
goto arguments

:build
where cmake >nul 2>nul
if errorlevel 1 (
  echo CMake is missing. Install it from https://cmake.org or with: pip install cmake 1>&2
  exit /b 1
)
pushd "%~dp0cpp"
cmake --preset %preset% || goto failed
cmake --build --preset %preset% --parallel || goto failed
if %test%==yes (
  ctest --preset %preset% || goto failed
)
popd
echo Built in cpp\build\%preset%. To see it work: cpp\build\%preset%\%config%\demo.exe
exit /b 0

:failed
popd
exit /b 1
