// README.md tells the truth: its examples are in the files that they name, and it knows every file.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "check.h"

using namespace mini::test;
namespace fs = std::filesystem;

namespace {

const fs::path root = MINI_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  check(file.good(), "cannot read " + path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A block of code after a line `<!-- from: path -->` stands in that file, word for word.
void examples(const std::string& readme) {
  const std::string mark = "<!-- from: ";
  int found = 0;
  for (size_t at = readme.find(mark); at != readme.npos; at = readme.find(mark, at + 1)) {
    const size_t begin = at + mark.size();
    const fs::path path = root / readme.substr(begin, readme.find(" -->", begin) - begin);
    const size_t code = readme.find('\n', readme.find("```", begin)) + 1;
    const std::string example = readme.substr(code, readme.find("```", code) - code);
    check(read(path).find(example) != std::string::npos,
          "not in " + path.string() + ":\n" + example);
    ++found;
  }
  check(found >= 4, "README.md has lost its examples");
}

void files(const std::string& readme) {
  for (const auto& entry : fs::recursive_directory_iterator(root / "src")) {
    if (!entry.is_regular_file()) continue;
    const fs::path path = fs::relative(entry.path(), root / "src");
    // A header and its source are one concept and are named once.
    const std::string name = (path.parent_path() / path.stem()).generic_string();
    check(readme.find("`" + name) != readme.npos,
          "README.md does not mention " + path.generic_string());
  }
}

}  // namespace

int main() {
  const std::string readme = read(root / "README.md");
  examples(readme);
  files(readme);
  return finish();
}
