"""Assembly: agent spans → runs. `Assembler` gathers, closes and tells; everything else here is a pure function of spans."""
