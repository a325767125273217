/* Answers as other programs do, by its own name: dxdispatch as DxDispatch 0.18.1 (its lines, its errors, its exit
   codes; its options end at the first space), python as Python with ONNX Runtime, hangs as a program that hangs or
   prints without end. On Windows, interrupts starts a program, and sends Ctrl-C when the file INTERRUPT is there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#include <process.h>
#include <direct.h>
#define sleep_a_little() Sleep(20)
#else
#include <unistd.h>
#define sleep_a_little() usleep(20000)
#endif

static int has(const char* text, const char* part) { return strstr(text, part) != NULL; }
static int ends(const char* text, const char* end) {
    size_t length = strlen(text), of_end = strlen(end);
    return length >= of_end && !strcmp(text + length - of_end, end);
}
static int parse_error(const char* why) {
    fprintf(stderr, "Failed to parse the model: %s\nRunAll called before initialize\n", why);
    return 255;
}
static void write_file(const char* name, const char* bytes) {
    FILE* file = fopen(name, "ab");
    if (file) fputs(bytes, file), fclose(file);
}

static int dxdispatch(int count, char** words) {
    static char model[1 << 20], name[300], text[600];
    if (!strcmp(words[1], "-S")) {
        printf(
            "DirectML:\n- Configured Version : NuGet (Microsoft.AI.DirectML.1.15.0)\n- Loaded Path        : "
            "C:\\dxdispatch\\directml.dll\n");
        printf(
            "- Loaded Version     : 1.15.4+241025-1615.1.dml-1.15.fac7597%c\n\nPIX:\n- Configured Version : None\n\n",
            0);
        return 1;
    }
    if (!strcmp(words[1], "-s")) {
        printf(
            "Some GPU\n-Version: 32.0.15.6094\n-Hardware: true\n\nMicrosoft Basic Render Driver\n-Version: "
            "10.0.1\n-Hardware: false\n\n");
        return 1;
    }
    printf("Running on '%s GPU'\n", has(words[1], "small_16x256.i64") ? "Another" : "Some");
    int is_verbose = 0;
    for (int i = 1; i < count; ++i) {
        if (strchr(words[i], ' ')) {
            printf("dxdispatch.exe failed with hr=0x80004001\n");
            fprintf(stderr, "Expected a .json or .onnx file\n");
            return 1;
        }
        is_verbose |= i > 1 && !strcmp(words[i - 1], "-v") && !strcmp(words[i], "2");
    }
    snprintf(text, sizeof text, "Model does not exist. Path given: '%s'.", words[1]);
    FILE* file = fopen(words[1], "rb");
    if (!file) return parse_error(text);
    model[fread(model, 1, sizeof model - 1, file)] = 0;
    fclose(file);
    snprintf(name, sizeof name, "%.*s", (int)(strlen(words[1]) - strlen(".json")), words[1]);
    snprintf(text, sizeof text,
             "Failed to parse dispatchable %s: Error parsing field 'OutputTensor': Expected an array.", name);
    if (ends(name, ".f16.copy")) return parse_error(text);
    if (ends(name, ".u8.copy")) return 0;
    printf("Compile Op\n");
    if (is_verbose) {
        printf("Initialize '%s': 1.0 ms\nDispatch '%s': 2 iterations\n", name, name);
        printf("GPU Timings (Cold) : 1 samples, 0.0100 ms average, 0.0100 ms min, 0.0100 ms median, 0.0100 ms max\n");
        printf("GPU Timings (Hot)  : 1 samples, 0.0025 ms average, 0.0025 ms min, 0.0025 ms median, 0.0025 ms max\n");
        printf(
            "The timings of each iteration: \niteration 0: 0.1 ms (CPU), 0.0100 ms (GPU)\niteration 1: 0.1 ms (CPU), "
            "0.0025 ms (GPU)\n");
    } else {
        printf("Dispatch '%s': 31 iterations, 0.1000 ms median (CPU), 0.002500 ms median (GPU)\n", name);
    }
    if (!has(model, "writeFile")) return 0;
    snprintf(text, sizeof text, "%s.bin", name);
    if (!strcmp(name, "check.fill.int16")) {
        fprintf(stderr, "Failed to write resource to file '%s': Could not open file: iostream error\n", text);
    } else if (!strcmp(name, "check.fill.int8")) {
        write_file(text, "000000000000000000000000000000000000000000000000000000000000");
    } else if (!strcmp(name, "check.fill.uint8")) {
#ifdef _WIN32
        _mkdir(text);
#else
        if (symlink("/dev/zero", text)) return 9;
#endif
    } else {
        write_file(text, "abc");
    }
    return 0;
}

/* Crashes in one case, and is wrong in another. */
static int python(int count, char** words) {
    const char *settings = words[2], *question = count > 3 ? words[3] : "";
    FILE* worker = fopen("worker.py", "rb");
    if (strcmp(words[1], "worker.py") || !worker) return 9;
    const char* provider = "CPU";
    if (has(settings, "\"provider\":\"dml\"")) provider = "Dml";
    if (has(settings, "a.so\"")) provider = "A";
    if (!*question) {
        printf("{\"hello\":{\"tool\":\"ONNX Runtime 9.9 %s\",\"provider\":\"%sExecutionProvider\",", provider,
               provider);
        printf("\"device\":\"%s\",\"pci\":\"\",\"versions\":\"Python 9\"}}\n", provider);
    } else if (has(question, "reverse_sequence_6x9.") && has(question, "u8")) {
        return 3;
    } else if (has(question, "reverse_sequence_4x7x5.")) {
        printf("{\"failed\":\"the output is wrong: element [0, 0, 1]\"}\n");
    } else if (has(question, "\"check\":true")) {
        printf("{\"output\":\"00ff\"}\n");
    } else if (has(question, "\"type\":\"float64\"")) {
        printf("{\"refused\":\"no kernel\"}\n");
    } else {
        printf("{\"timed\":{\"dispatches\":3,\"samples\":[1.5,1.5,1.5,1.5,1.5,1.5,1.5]}}\n");
    }
    return 0;
}

/* What it starts lives as long as the file STARTED grows. */
static int hangs(char** words) {
    if (*words[1] == '-') return 1;
    if (!strcmp(words[1], "child"))
        for (;; sleep_a_little()) write_file(getenv("STARTED"), "x");
    if (ends(words[1], getenv("ALL_HANG") ? ".json" : ".int8.json")) {
#ifdef _WIN32
        _spawnl(_P_NOWAIT, _pgmptr, "hangs.exe", "child", NULL);
#else
        words[1] = "child";
        if (!fork()) hangs(words);
#endif
        for (;;) sleep_a_little();
    }
    static char much[1 << 20];
    for (;;) fwrite(much, 1, sizeof much, stdout);
}

static int interrupts(void) {
#ifdef _WIN32
    STARTUPINFOA startup = {.cb = sizeof startup};
    PROCESS_INFORMATION child;
    char* line = strstr(GetCommandLineA(), " -- ");
    if (!line || !CreateProcessA(NULL, line + 4, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &child)) return 9;
    SetConsoleCtrlHandler(NULL, TRUE); /* for itself */
    while (GetFileAttributesA(getenv("INTERRUPT")) == INVALID_FILE_ATTRIBUTES) sleep_a_little();
    if (!GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0)) return 9;
    DWORD code = 9;
    WaitForSingleObject(child.hProcess, INFINITE);
    GetExitCodeProcess(child.hProcess, &code);
    return (int)code;
#else
    return 9;
#endif
}

int main(int count, char** words) {
    if (has(words[0], "interrupts")) return interrupts();
    if (count < 2) return 9;
    if (has(words[0], "hangs")) return hangs(words);
    return has(words[0], "python") ? python(count, words) : dxdispatch(count, words);
}
