// To be included first by files whose functions run while the guest's vector and x87 registers
// are in the host's: the compiler uses general registers alone.
#pragma GCC target("general-regs-only")
