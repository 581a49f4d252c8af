# Writes the text of INPUT to OUTPUT as the pieces of a C++ array of strings. Pieces, because MSVC
# takes no literal of more than 16 KB.
file(READ "${INPUT}" text)
string(LENGTH "${text}" length)
set(piece_size 12000)
set(pieces "")
set(begin 0)
while(begin LESS length)
  string(SUBSTRING "${text}" ${begin} ${piece_size} piece)
  string(APPEND pieces "R\"mini(${piece})mini\",\n")
  math(EXPR begin "${begin} + ${piece_size}")
endwhile()
file(WRITE "${OUTPUT}" "${pieces}")
