# Startup: variables, and a stack of known content. Then `main`.

    .section .start, "ax"
    .global _start
_start:
    la t0, trap
    csrw mtvec, t0
    la sp, _stack_start

    la t0, _data_start
    la t1, _data_end
    la t2, _data_source
1:  bgeu t0, t1, 2f
    lw t3, 0(t2)
    sw t3, 0(t0)
    addi t0, t0, 4
    addi t2, t2, 4
    j 1b

2:  la t0, _bss_start
    la t1, _bss_end
3:  bgeu t0, t1, 4f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 3b

4:  li t1, {PAINT}
5:  bgeu t0, sp, 6f
    sw t1, 0(t0)
    addi t0, t0, 4
    j 5b

    # Interrupts of devices end `wait`. They call no handler, because mstatus.MIE is 0.
6:  li t0, 1 << 11
    csrw mie, t0
    tail main

    # An invalid access or instruction.
    .balign 4
trap:
    tail reset

    # Sleeps until an interrupt is pending.
    .global wait
wait:
    wfi
    ret
